package infra

import (
	"encoding/json"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/jsii-runtime-go"

	"github.com/bdk-lambda/bdk/shared/bdkerr"
	"github.com/bdk-lambda/bdk/shared/deploy"
)

// What API Gateway lets through a second, and at once. Beyond it answers 429: a flood must not become a bill.
const (
	ratePerSecond = 500
	burst         = 1000
)

// buffered is what API Gateway waits for an answer that is not streamed.
const buffered = 29

// addAPI adds the API. Its stage has the agent's name, so paths begin with it as on every other host. Who may call is for the
// functions to say, which know the owners of sessions. Bodies are text, so no media type is declared to be binary.
func (s *stack) addAPI() {
	props := &awsapigateway.RestApiProps{
		RestApiName: s.StackName(), Description: jsii.String("The agent " + s.Manifest.Slug),
		EndpointTypes:  &[]awsapigateway.EndpointType{awsapigateway.EndpointType_REGIONAL}, // others end silent streams after 30 s
		CloudWatchRole: jsii.Bool(!s.NoLogRole),
		DeployOptions: &awsapigateway.StageOptions{
			StageName:            &s.Manifest.Slug,
			AccessLogDestination: awsapigateway.NewLogGroupLogDestination(s.addLogs("AccessLogs", "/bdk/"+s.Manifest.Slug+"/access")),
			AccessLogFormat:      awsapigateway.AccessLogFormat_Custom(accessLog()),
			ThrottlingRateLimit:  number(ratePerSecond), ThrottlingBurstLimit: number(burst),
		},
	}
	if !s.NoLogRole {
		props.CloudWatchRoleRemovalPolicy = awscdk.RemovalPolicy_RETAIN // the account's other APIs may log with it by now
	}
	s.api = awsapigateway.NewRestApi(s.Stack, jsii.String("Api"), props)
	s.api.Node().TryRemoveChild(jsii.String("Endpoint")) // an output; ours has a name
	integrations := map[string]awsapigateway.LambdaIntegration{}
	for _, f := range s.Manifest.Functions {
		if f.Kind != deploy.Worker {
			integrations[f.Name] = awsapigateway.NewLambdaIntegration(s.functions[f.Name], s.integration(f))
		}
	}
	for _, r := range s.Manifest.Routes {
		s.api.Root().ResourceForPath(&r.Path).AddMethod(jsii.String("ANY"), integrations[r.Function], &awsapigateway.MethodOptions{
			AuthorizationType: awsapigateway.AuthorizationType_NONE,
		})
	}
	s.addGatewayResponses()
}

func (s *stack) integration(f deploy.Function) *awsapigateway.LambdaIntegrationOptions {
	options := &awsapigateway.LambdaIntegrationOptions{
		ScopePermissionToMethod: jsii.Bool(false),
		ResponseTransferMode:    awsapigateway.ResponseTransferMode_BUFFERED, Timeout: seconds(min(f.Seconds, buffered)),
	}
	if f.Kind == deploy.Streamed {
		options.ResponseTransferMode, options.Timeout = awsapigateway.ResponseTransferMode_STREAM, seconds(f.Seconds)
	}
	return options
}

// addGatewayResponses gives the errors of API Gateway itself the shape that all errors have. Their headers are fixed, so pages can
// read them only if there is one origin, or if any may.
func (s *stack) addGatewayResponses() {
	add := func(kind awsapigateway.ResponseType, code bdkerr.Code, headers map[string]*string) {
		if len(s.Origins) == 1 {
			headers["Access-Control-Allow-Origin"] = jsii.String("'" + s.Origins[0] + "'")
			headers["Access-Control-Expose-Headers"] = jsii.String("'Retry-After'")
		}
		s.api.AddGatewayResponse(jsii.String("Gateway_"+*kind.ResponseType()), &awsapigateway.GatewayResponseOptions{
			Type: kind, ResponseHeaders: &headers,
			Templates: &map[string]*string{
				"application/json": jsii.String(`{"ok":false,"error":"` + string(code) + `","message":$context.error.messageString}`),
			},
		})
	}
	add(awsapigateway.ResponseType_DEFAULT_4XX(), bdkerr.InvalidRequest, map[string]*string{})
	add(awsapigateway.ResponseType_DEFAULT_5XX(), bdkerr.Unavailable, map[string]*string{})
	add(awsapigateway.ResponseType_REQUEST_TOO_LARGE(), bdkerr.PayloadTooLarge, map[string]*string{})
	add(awsapigateway.ResponseType_THROTTLED(), bdkerr.Unavailable, map[string]*string{"Retry-After": jsii.String("'1'")})
}

// accessLog returns the format of a line of the access log.
func accessLog() *string {
	line, err := json.Marshal(map[string]string{
		"requestId": "$context.requestId", "time": "$context.requestTime", "ip": "$context.identity.sourceIp",
		"method": "$context.httpMethod", "path": "$context.path", "route": "$context.resourcePath", "status": "$context.status",
		"bytes": "$context.responseLength", "ms": "$context.responseLatency", "functionMs": "$context.integrationLatency",
		"error": "$context.error.message", "functionError": "$context.integration.error",
	})
	if err != nil {
		return nil // not of these
	}
	return jsii.String(string(line))
}
